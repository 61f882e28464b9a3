"""Losses with their gradients from PyTorch, metrics from scikit-learn, sacrebleu and rouge-score: losses.json.

    pip install torch numpy scikit-learn sacrebleu rouge-score; python make_losses.py TARGET-FOLDER
PyTorch, and the packages for metrics, may be in different environments: `losses` or `metrics` as second argument writes one part."""
import importlib.metadata
import json
import os
import sys

import numpy as np

TARGET = sys.argv[1]
PARTS = sys.argv[2:] or ["losses", "metrics"]
rng = np.random.RandomState(5)
LOGITS = rng.randn(6, 4).astype(np.float32)
CLASSES = [2, 0, 3, 1, -100, 2]
SHARES = (lambda x: x / x.sum(-1, keepdims=True))(rng.rand(6, 4)).astype(np.float32)
TARGETS = rng.randn(6, 4).astype(np.float32)
PROBABILITIES = (1 / (1 + np.exp(-LOGITS))).astype(np.float32)
BITS = (rng.rand(6, 4) > 0.5).astype(np.float32)
POSITIVE_WEIGHT = np.array([1, 2, 0.5, 3], np.float32)
SEEN = rng.randn(40, 5).astype(np.float32)
MEANT = rng.randint(0, 4, 40)  # class 4 never is
TEXTS = [("the cat sat on the mat", "the cat sat on the mat today"), ("there is a dog in the garden", "a dog is in the garden now"),
         ("我 爱 北 京 天 安 门", "我 爱 天 安 门"), ("one two three four five six", "one two three four seven six")]


def losses():
    import torch
    import torch.nn.functional as F
    out = {}

    def add(name, values, loss):
        x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        result = loss(x)
        result.backward()
        out[name] = {"input": values.tolist(), "loss": result.item(), "gradient": x.grad.tolist()}

    d = lambda a: torch.tensor(a, dtype=torch.float64)
    for smoothing in (0.0, 0.1):
        for reduction in ("mean", "sum"):
            add(f"sparse cross-entropy, {reduction}, smoothing {smoothing}", LOGITS,
                lambda x: F.cross_entropy(x, torch.tensor(CLASSES), reduction=reduction, label_smoothing=smoothing))
        add(f"dense cross-entropy, mean, smoothing {smoothing}", LOGITS, lambda x: F.cross_entropy(x, d(SHARES), label_smoothing=smoothing))
    add("mse, mean", LOGITS, lambda x: F.mse_loss(x, d(TARGETS)))
    add("mse, sum", LOGITS, lambda x: F.mse_loss(x, d(TARGETS), reduction="sum"))
    add("l1, mean", LOGITS, lambda x: F.l1_loss(x, d(TARGETS)))
    add("bce, mean", PROBABILITIES, lambda x: F.binary_cross_entropy(x, d(BITS)))
    add("bce with logits, mean", LOGITS, lambda x: F.binary_cross_entropy_with_logits(x, d(BITS)))
    add("bce with logits, mean, positive weight", LOGITS, lambda x: F.binary_cross_entropy_with_logits(x, d(BITS), pos_weight=d(POSITIVE_WEIGHT)))
    data = {"classes": CLASSES, "shares": SHARES.tolist(), "targets": TARGETS.tolist(), "bits": BITS.tolist(), "positive_weight": POSITIVE_WEIGHT.tolist()}
    return {"made with": {"torch": torch.__version__}, "data": data, "cases": out}


def metrics():
    import sacrebleu
    from rouge_score import rouge_scorer
    from sklearn import metrics as m
    predicted = SEEN.argmax(-1)
    labels = list(range(5))
    many = dict(labels=labels, zero_division=0)
    out = {"predictions": SEEN.tolist(), "targets": MEANT.tolist(), "accuracy": m.accuracy_score(MEANT, predicted),
           "top_1_accuracy": m.top_k_accuracy_score(MEANT, SEEN, k=1, labels=labels), "top_3_accuracy": m.top_k_accuracy_score(MEANT, SEEN, k=3, labels=labels)}
    for name, score in (("precision", m.precision_score), ("recall", m.recall_score), ("F1", m.f1_score)):
        out[name] = score(MEANT, predicted, average="macro", **many)
        out[name + " per class"] = score(MEANT, predicted, average=None, **many).tolist()
    out["numbers"] = {"predictions": LOGITS[:, 0].tolist(), "targets": TARGETS[:, 0].tolist(), "mae": m.mean_absolute_error(TARGETS[:, 0], LOGITS[:, 0]),
                      "mse": m.mean_squared_error(TARGETS[:, 0], LOGITS[:, 0])}
    candidates, references = [t[0] for t in TEXTS], [t[1] for t in TEXTS]
    bleu = sacrebleu.metrics.BLEU(tokenize="none", smooth_method="none", force=True)

    class Words:
        def tokenize(self, text):
            return text.split()

    scorer = rouge_scorer.RougeScorer(["rougeL"], tokenizer=Words())
    out["texts"] = {"candidates": candidates, "references": references, "bleu": bleu.corpus_score(candidates, [references]).score / 100,
                    "rouge_l": float(np.mean([scorer.score(r, c)["rougeL"].fmeasure for c, r in TEXTS]))}
    versions = {p: importlib.metadata.version(p) for p in ("scikit-learn", "sacrebleu", "rouge-score")}
    return {"made with": versions, **out}


path = os.path.join(TARGET, "losses.json")
result = json.load(open(path)) if os.path.exists(path) else {}
for part in PARTS:
    result[part] = {"losses": losses, "metrics": metrics}[part]()
json.dump(result, open(path, "w"), indent=1, ensure_ascii=False)
