/** Who has how many of some subnets, side by side: a bar in a row, or the inside of a rectangle. */
import { type Html, html, nothing } from "../web/html.ts";
import type { Rectangle } from "./occupied.ts";
import { type SharePart, shareWords } from "./summary.ts";

/** The chequered look of the second dozen of categories, over their plain colour; once on a page. */
export const patternDefinitions: Html = html`<defs><pattern id="chequered" width="8" height="8" patternUnits="userSpaceOnUse"><path d="M0 0h4v4H0zM4 4h4v4H4z" fill="#000" opacity="0.45"/></pattern></defs>`;

/** The same for a page whose bars are all small pictures of their own. */
export const sharePatterns: Html = html`<svg class="patterns" width="0" height="0" aria-hidden="true">${patternDefinitions}</svg>`;

/** The parts from left to right, as wide as they have subnets. */
export function partsFill(parts: readonly SharePart[], { x, y, width, height }: Rectangle): Html {
  const all = parts.reduce((sum, { subnets }) => sum + subnets, 0);
  let before = 0;
  return html`${parts.map(({ colour, kind, patterned, subnets }) => {
    const left = rounded(x + (width * before) / all);
    before += subnets;
    const wide = rounded(x + (width * before) / all - left);
    const place = html`x="${left}" y="${y}" width="${wide}" height="${height}"`;
    return html`<rect ${place} fill="${colour}"${kind === "none" ? html` opacity="0.4"` : nothing}/>${patterned ? html`<rect ${place} fill="url(#chequered)"/>` : nothing}`;
  })}`;
}

const bar = { x: 0, y: 0, width: 120, height: 10 };

/** A line's bar; its title says it in words. */
export function shareBar(parts: readonly SharePart[]): Html {
  return html`<svg class="share-bar" viewBox="0 0 ${bar.width} ${bar.height}" preserveAspectRatio="none" role="img" aria-label="${shareWords(parts)}"><title>${shareWords(parts)}</title>${partsFill(parts, bar)}</svg>`;
}

const rounded = (value: number) => Math.round(100 * value) / 100;
