"""
A layer inside a network
========================

A network scores the tags of words, and the CRF of a chain is its last layer. Gradients pass through
it, and the transitions are parameters like others (:doc:`/torch`). The script needs PyTorch, the
extra ``[torch]``.
"""

import matplotlib.pyplot as plt
import torch

from structsolve.torch import Marginals, StructuredLoss, decode

torch.manual_seed(0)
torch.set_num_threads(1)
words = torch.randint(1, 40, (320, 12))
tags = (words // 8 + words.roll(1, 1) // 20) % 5  # a tag depends on the word before, too
lengths = torch.randint(4, 13, (320,))


class Tagger(torch.nn.Module):
    """Scores of tags from words, and of pairs of neighbouring tags."""

    def __init__(self, n_words=40, n_tags=5, size=24):
        super().__init__()
        self.embed = torch.nn.Embedding(n_words, size)
        self.read = torch.nn.Conv1d(size, size, 3, padding=1)
        self.score = torch.nn.Linear(size, n_tags)
        self.transition = torch.nn.Parameter(torch.zeros(n_tags, n_tags))

    def forward(self, words):
        """Scores of a batch."""
        hidden = torch.relu(self.read(self.embed(words).transpose(1, 2))).transpose(1, 2)
        return {"node": self.score(hidden), "transition": self.transition}


# %%
# Train the same network with two losses.
i = 256 + int(lengths[256:].argmax())  # the sentence to look at
curves = {}
for surrogate in ("crf", "margin"):
    model, loss = Tagger(), StructuredLoss("chain", surrogate=surrogate)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    curves[surrogate] = []
    for _ in range(40):
        optimizer.zero_grad()
        value = loss(model(words[:256]), tags[:256], lengths[:256])
        value.backward()
        optimizer.step()
        best = decode(loss, model(words[256:]), lengths[256:])
        inside = torch.arange(12) < lengths[256:, None]
        curves[surrogate].append((best != tags[256:])[inside].float().mean().item())
    if surrogate == "crf":
        tables = Marginals("chain")(model(words[i : i + 1]), lengths[i : i + 1])
        chances = tables["node"][0].detach()

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (name, line), color in zip(curves.items(), ["#0072B2", "#D55E00"]):
    left.plot(line, color=color, label=name)
left.set(xlabel="epoch", ylabel="errors on new sentences", ylim=(0, None))
left.legend(frameon=False)
left.spines[["top", "right"]].set_visible(False)
n = int(lengths[i])
image = right.imshow(chances[:n].T.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
right.plot(range(n), tags[i, :n].numpy(), "x", color="#D55E00")
right.set(xlabel="word", ylabel="tag", title="marginals of one sentence, and the truth")
figure.colorbar(image)
