"""Writes tests/fixtures/images: small pictures of every kind that is read, and what Pillow makes of them: pixels, and sizes by its BILINEAR.

Run with Pillow 13, numpy and safetensors:  python tests/oracle/make_images.py
"""
import os
import pathlib

import numpy
from PIL import Image
from safetensors.numpy import save_file

target = pathlib.Path(os.environ.get("ORACLE_FIXTURES", "tests/fixtures")) / "images"
target.mkdir(parents=True, exist_ok=True)
random = numpy.random.default_rng(7)

y, x = numpy.mgrid[0:19, 0:26]
waves = numpy.stack([127 + 120 * numpy.sin(x / 3), 127 + 120 * numpy.cos((x + 2 * y) / 4), 10 * y], -1)
colour = numpy.clip(waves + random.normal(0, 12, waves.shape), 0, 255).astype("uint8")
rgb = Image.fromarray(colour)
files = {
    "colour.png": (rgb, {}),
    "grey.png": (rgb.convert("L"), {}),
    "palette.png": (rgb.quantize(16), {}),
    "transparent.png": (Image.fromarray(numpy.dstack([colour, (x * 9).astype("uint8")])), {}),
    "two.png": (rgb.convert("1"), {}),
    "small.png": (rgb.crop((0, 0, 5, 4)), {}),
    "colour.jpg": (rgb, {"quality": 90}),
    "progressive.jpg": (rgb, {"quality": 85, "progressive": True}),
    "grey.jpg": (rgb.convert("L"), {"quality": 90}),
}
expected = {}
for name, (image, options) in files.items():
    image.save(target / name, **options)
    read = Image.open(target / name)
    key = name.replace(".", "_")
    expected[f"{key}.rgb"] = numpy.asarray(read.convert("RGB"))
    expected[f"{key}.grey"] = numpy.asarray(read.convert("RGB").convert("L"))
    if name in ("colour.png", "colour.jpg"):
        for width, height in ((11, 7), (26, 6), (40, 33), (3, 3)):
            expected[f"{key}.{width}x{height}"] = numpy.asarray(read.convert("RGB").resize((width, height), Image.BILINEAR))
save_file({key: numpy.ascontiguousarray(value) for key, value in expected.items()}, target / "expected.safetensors")
Image.fromarray(numpy.dstack([colour, colour[..., :1]]), "CMYK").save(target / "cmyk.jpg")
print(target, sum(file.stat().st_size for file in target.iterdir()), "bytes")
