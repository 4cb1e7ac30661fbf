/**
 * Colours of what commands print: only on a terminal, and never where the reader asked for none (NO_COLOR, see
 * no-color.org; TERM=dumb). FORCE_COLOR=1 keeps them in a pipe. A colour is never the only sign of anything.
 */
import { styleText } from "node:util";

export type Style = "strong" | "soft" | "good" | "warm" | "bad";

const formats = {
  strong: "bold",
  soft: "dim",
  good: "green",
  warm: "yellow",
  bad: "red",
} as const satisfies Record<Style, Parameters<typeof styleText>[0]>;

export interface Paper {
  readonly isTTY?: boolean;
}

export function hasColours(paper: Paper = process.stdout, env: NodeJS.ProcessEnv = process.env): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "" && env.FORCE_COLOR !== "0") return true;
  return paper.isTTY === true && env.TERM !== "dumb";
}

/** The text in that style, or as it is where there are no colours. */
export function paint(style: Style, text: string, colours: boolean = hasColours()): string {
  // Whether there are colours is decided above, for Node itself looks at another stream.
  return colours ? styleText(formats[style], text, { validateStream: false }) : text;
}

const states: Readonly<Record<string, Style>> = {
  online: "good",
  draining: "warm",
  offline: "bad",
  revoked: "bad",
};

/** A crawler's state: the word says it, the colour makes it found. */
export function stateStyle(state: string): Style | null {
  return states[state] ?? null;
}
