from .structure import Structure
class FunctionStructure(Structure):
    name="functions"
