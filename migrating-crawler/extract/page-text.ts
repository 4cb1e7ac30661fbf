/** The page's text for the index and for people: the main blocks, joined where the weight does not change. */
import type { Weight } from "./lexemes.ts";
import { mainBlocks } from "./main-text.ts";
import type { ReadPage } from "./read-page.ts";
import { tidy } from "./tidy.ts";

export interface TextPiece {
  readonly weight: Weight;
  readonly text: string;
}

export interface PageText {
  /** In the page's order, then what its pictures show. */
  readonly pieces: readonly TextPiece[];
  /** The first words of the running text, as much as an excerpt and the language detector want. */
  readonly prose: string;
}

/** A piece is not joined further beyond this, so that other work has its turns between two. */
const longPieceCharacters = 16 * 1024;
const maxProseCharacters = 3000;

export function pageText(read: Pick<ReadPage, "blocks" | "alts">): PageText {
  const pieces: { weight: Weight; text: string }[] = [];
  let prose = "";
  for (const { text, headingLevel } of mainBlocks(read.blocks)) {
    const weight = headingLevel > 0 ? "B" : "D";
    const last = pieces.at(-1);
    if (last?.weight === weight && last.text.length < longPieceCharacters) last.text += `\n${text}`;
    else pieces.push({ weight, text });
    if (weight === "D" && prose.length < maxProseCharacters) prose += `${text.slice(0, maxProseCharacters)} `;
  }
  if (read.alts !== "") pieces.push({ weight: "D", text: read.alts });
  return { pieces, prose: tidy(prose) };
}
