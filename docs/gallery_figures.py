"""How sphinx-gallery gets its pictures: each block of a script may leave one in `figure`."""

from matplotlib import pyplot
from sphinx_gallery.scrapers import figure_rst


def scrape(block, block_vars, gallery_conf):
    """Save the block's `figure`, unless an earlier block did.

    Figures need not be pyplot's, as those of `structsolve.evaluation.plotting` are not.
    """
    figure = block_vars["example_globals"].get("figure")
    if figure is None or getattr(figure, "in_gallery", False):
        return ""
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=110)
    figure.in_gallery = True
    pyplot.close(figure)
    return figure_rst([path], gallery_conf["src_dir"])
