/** The partner's local page is one file without assets, so its colours stand there once more: they are the same. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { pageStyle } from "#crawler/status/status-page";

const baseCss = readFileSync(new URL("../../../coordinator/web/assets/base.css", import.meta.url), "utf8");

/** Names and values of the variables, light and dark apart; colours written short are written out. */
function colours(css: string): { readonly light: Map<string, string>; readonly dark: Map<string, string> } {
  const [, dark = ""] = /prefers-color-scheme:\s*dark\)\s*\{\s*:root\s*\{([^}]*)\}/.exec(css) ?? [];
  const [, light = ""] = /:root\s*\{([^}]*)\}/.exec(css) ?? [];
  const read = (block: string) =>
    new Map(
      [...block.matchAll(/(--[\w-]+):\s*(#[0-9a-f]{3,6})/g)].map(([, name, value]) => [name!, long(value!)]),
    );
  return { light: read(light), dark: read(dark) };
}

const long = (colour: string) =>
  colour.length === 4 ? `#${[...colour.slice(1)].map((digit) => digit + digit).join("")}` : colour;

it("has the coordinator's colours, in light and in dark", () => {
  const [partner, coordinator] = [colours(pageStyle), colours(baseCss)];

  expect(partner.light.size).toBeGreaterThan(8);
  expect(partner.dark.size).toBeGreaterThan(8);
  for (const scheme of ["light", "dark"] as const) {
    for (const [name, value] of partner[scheme]) {
      // What only the partner's page has, is its own.
      if (!coordinator[scheme].has(name)) continue;
      expect([scheme, name, value]).toEqual([scheme, name, coordinator[scheme].get(name)]);
    }
  }
});
