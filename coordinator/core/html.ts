/**
 * Templates that escape by default: every value in `html` is treated as text unless `html` made it. Attribute values must be
 * in double quotes, so that no value can break out of its attribute.
 */
const brand: unique symbol = Symbol("html");

export interface Html {
  readonly [brand]: true;
  readonly markup: string;
}

export type HtmlValue = Html | string | number | null | undefined | false | readonly HtmlValue[];

export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let markup = strings[0] ?? "";
  for (let index = 0; index < values.length; index++) {
    markup += markupOf(values[index]) + (strings[index + 1] ?? "");
  }
  return { [brand]: true, markup };
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Returns an external link target if its scheme is a web scheme (never a script); otherwise null. */
export function safeHref(url: string): string | null {
  return /^https?:\/\//i.test(url) ? url : null;
}

function markupOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return "";
  if (typeof value === "string") return escapeText(value);
  if (typeof value === "number") return String(value);
  if (isHtml(value)) return value.markup;
  return value.map(markupOf).join("");
}

function isHtml(value: Html | readonly HtmlValue[]): value is Html {
  return brand in value;
}

function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? "");
}
