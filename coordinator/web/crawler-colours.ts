/**
 * The colour of a crawler, the same wherever it is drawn. Twelve hues that people with the usual colour deficiencies
 * tell apart (after the sets of P. Tol and of Okabe and Ito), light enough to stand out from near black and dark enough
 * to stand out from white; then the same ones darker. With more crawlers colours come again, so a name stands beside each.
 */
const hues = [
  "#0072b2",
  "#e68100",
  "#00946c",
  "#cc5aa0",
  "#4aa4de",
  "#be4628",
  "#806edc",
  "#9e8c14",
  "#1ea0aa",
  "#965a3c",
  "#6e9632",
  "#c83c5a",
];

/** By its id, which no other crawler ever gets: who joins or leaves changes nobody's colour. */
export function crawlerColour(crawlerId: number): string {
  const index = crawlerId - 1;
  const hue = hues[index % hues.length] as string;
  return Math.floor(index / hues.length) % 2 === 0 ? hue : darker(hue);
}

const darker = (hue: string): string =>
  hue.replace(/[\da-f]{2}/g, (part) =>
    Math.round(0.62 * Number.parseInt(part, 16))
      .toString(16)
      .padStart(2, "0"),
  );

export const nobodysColour = "#869694";

/** Of several crawlers together. */
export const othersColour = "#5c6870";
