/**
 * Below 600 px a row of a table is a card, and each of its cells says what it is (tables.css). The words come from the table's own head: one
 * pass over a finished page puts them on the cells, so that no table can be forgotten.
 */

const tags = /<(\/?)(table|thead|tr|th|td)\b([^>]*)>/g;

/** Cells of the body below a head get `data-label`; everything else stays as it is. */
export function withCellLabels(markup: string): string {
  if (!markup.includes("<thead")) return markup;
  let labelled = "";
  let copied = 0;
  let labels: string[] = [];
  let isInHead = false;
  let column = 0;
  let headCellAt = 0;
  for (const { 0: tag, 1: slash, 2: name, 3: attributes = "", index } of markup.matchAll(tags)) {
    const isEnd = slash === "/";
    if (name === "table") labels = [];
    else if (name === "thead") isInHead = !isEnd;
    else if (name === "tr") column = 0;
    else if (isEnd) {
      if (isInHead && name === "th") labels[column++] = textOf(markup.slice(headCellAt, index));
    } else if (isInHead) headCellAt = index + tag.length;
    else {
      const label = labels[column] ?? "";
      column += spanOf(attributes);
      if (name !== "td" || label === "") continue;
      labelled += `${markup.slice(copied, index)}<td data-label="${label}"${attributes}>`;
      copied = index + tag.length;
    }
  }
  return labelled + markup.slice(copied);
}

/** Of markup that was escaped, and so may stand in an attribute. What only screen readers are told is no label for the eye. */
function textOf(markup: string): string {
  return markup
    .replace(/<span class="hidden">[^<]*<\/span>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .replaceAll('"', "&quot;")
    .trim();
}

function spanOf(attributes: string): number {
  return Number(/\bcolspan="(\d{1,3})"/.exec(attributes)?.[1] ?? 1);
}
