/** Displays what a site states about a page's uses. */
import { list, plain, section } from "../../ask/document.ts";
import type { Node } from "../../ask/operation.ts";
import { small } from "../../web/components.ts";
import { instant } from "../../web/format.ts";
import { html } from "../../web/html.ts";
import { answersWords, type StatedUses, statementLines } from "../batch/stated-uses.ts";

/** Returns null if nothing is stated. */
export function statedSection(stated: StatedUses | null): Node | null {
  if (stated === null) return null;
  return section("What the site states", [
    plain(answersWords(stated.answers)),
    list(statementLines(stated.statements).map((line) => html`<span class="break">${line}</span>`)),
    plain(
      small(
        html`Since ${instant(stated.since)}; found again ${instant(stated.confirmedAt)}. Where statements differ, the strictest holds.`,
      ),
    ),
  ]);
}
