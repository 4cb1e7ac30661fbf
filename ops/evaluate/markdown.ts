/** A table in Markdown; cells are text already. */
export function markdownTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(titles), `|${"---|".repeat(titles.length)}`, ...rows.map(line)].join("\n");
}

export function image(file: string, words: string): string {
  return `![${words}](${file})`;
}

/** `1,000`. */
export const count = (value: number): string => value.toLocaleString("en");
