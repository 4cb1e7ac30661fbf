/** Without soft hyphens (U+00AD): they say where a line may break inside a word, and are no part of the word. */
export function withoutSoftHyphens(text: string): string {
  return text.includes("\u00ad") ? text.replaceAll("\u00ad", "") : text;
}
