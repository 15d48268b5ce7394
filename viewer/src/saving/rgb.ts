// Colours as every program that opens a picture knows them: most do not know oklch.

const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
const known = new Map<string, readonly [number, number, number, number]>();

/** Red, green, blue and opacity, from 0 to 255, of any colour of CSS. */
export function channels(colour: string): readonly [number, number, number, number] {
  let found = known.get(colour);
  if (found === undefined) {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    const [red = 0, green = 0, blue = 0, opacity = 0] = pixel.getImageData(0, 0, 1, 1).data;
    found = [red, green, blue, opacity];
    known.set(colour, found);
  }
  return found;
}

export function rgb(colour: string): string {
  const [red, green, blue, opacity] = channels(colour);
  return opacity === 255 ? `rgb(${red},${green},${blue})` : `rgba(${red},${green},${blue},${(opacity / 255).toFixed(3)})`;
}
