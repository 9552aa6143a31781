// Canvases in device pixels, with the colours of the style sheet.

// The context of a canvas as large as it is shown, in CSS pixels.
export function fit(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height };
}

// A colour of the style sheet: ink("--accent").
export const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// "#0072b2" as three numbers.
export function rgb(name) {
  const hex = ink(name).replace("#", "");
  const full = hex.length === 3 ? [...hex].map((digit) => digit + digit).join("") : hex;
  return [0, 2, 4].map((at) => Number.parseInt(full.slice(at, at + 2), 16));
}

// The colours from one to another in 256 steps, as pixels for `paint`.
export function ramp(from, to) {
  const pixels = new Uint8ClampedArray(256 * 4);
  for (let step = 0; step < 256; step += 1) {
    from.forEach((value, at) => {
      pixels[step * 4 + at] = value + ((to[at] - value) * step) / 255;
    });
    pixels[step * 4 + 3] = 255;
  }
  return new Uint32Array(pixels.buffer);
}

// Fill a canvas of `wide` by `high` pixels with `pixel(at)`.
export function paint(canvas, wide, high, pixel) {
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  const context = canvas.getContext("2d");
  const image = context.createImageData(wide, high);
  const pixels = new Uint32Array(image.data.buffer);
  for (let at = 0; at < pixels.length; at += 1) pixels[at] = pixel(at);
  context.putImageData(image, 0, 0);
}
