/** Runs of white space as one blank, none at the ends. */
export function tidy(text: string): string {
  return untidy.test(text) ? text.replace(/\s+/g, " ").trim() : text;
}

const untidy = /^\s|\s\s|[^\S ]|\s$/;
