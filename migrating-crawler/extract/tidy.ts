import { composed } from "#protocol/composed";

/** Composed, runs of white space as one blank, none at the ends. */
export function tidy(written: string): string {
  const text = composed(written);
  return untidy.test(text) ? text.replace(odd, " ").trim() : text;
}

const untidy = /\s\s|[^\S ]|^\s|\s$/;
/** White space that is not a single blank: most is, and stays. */
const odd = /\s{2,}|[^\S ]/g;
