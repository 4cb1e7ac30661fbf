/** Displays what changed in a page's text: each place with the words removed, added and around it. */
import { howMany } from "#core/format";
import { type Html, html, nothing } from "../../web/html.ts";
import { partWords, type TextDifference, type TextPlace } from "./text-difference.ts";

/** Collapsed, for table rows. */
export function foldedDifference(difference: TextDifference | null): Html {
  if (difference === null) return nothing;
  const count = difference.places.length + difference.more;
  return html`<details class="difference"><summary>${howMany(count, "place")} in the text</summary>${differenceList(difference)}</details>`;
}

export function differenceList({ places, more }: TextDifference): Html {
  return html`<ul class="difference-places">${places.map((place, at) => placeItem(place, places[at - 1]))}</ul>${
    more === 0 ? nothing : html`<p class="small">And ${howMany(more, "more place")}.</p>`
  }`;
}

/** The part is named at its first place. */
function placeItem({ part, before, removed, added, after }: TextPlace, last: TextPlace | undefined): Html {
  return html`<li>${part === last?.part ? nothing : html`<span class="small">${partWords[part]}</span>`}<bdi>${before}</bdi>${
    removed === "" ? nothing : html` <del><bdi>${removed}</bdi></del>`
  }${added === "" ? nothing : html` <ins><bdi>${added}</bdi></ins>`} <bdi>${after}</bdi></li>`;
}
