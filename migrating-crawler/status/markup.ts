/**
 * Templates for the local page that escape by default: whatever is put into `html` is text, unless `html` made it.
 * Attribute values stand in double quotes; then no value can leave its attribute. (The coordinator's pages have a
 * template of their own; the crawler ships as one file without them.)
 */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type MarkupValue = Markup | string | number | null | readonly MarkupValue[];

export function html(strings: TemplateStringsArray, ...values: readonly MarkupValue[]): Markup {
  return new Markup(
    strings.reduce((text, part, index) => `${text}${textOf(values[index - 1] ?? null)}${part}`),
  );
}

function textOf(value: MarkupValue): string {
  if (value === null) return "";
  if (value instanceof Markup) return value.text;
  if (typeof value === "number") return String(value);
  if (typeof value === "string")
    return value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  return value.map(textOf).join("");
}
