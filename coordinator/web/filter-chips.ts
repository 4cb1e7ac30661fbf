/**
 * What narrows a list, as chips: each says one filter of the address, and leads to the same list without it. The address
 * alone holds the filters, so that a list can be sent, bookmarked and saved as it is seen.
 */
import { type Html, html, nothing, pathWith } from "./html.ts";

export interface FilterChip {
  /** The parameter of the address. */
  readonly name: string;
  /** What is narrowed: "Language". */
  readonly label: string;
  /** To what, as people read it: "German". */
  readonly value: string;
  /** What the address changes when the filter goes, where that is more than its own parameter. */
  readonly without?: AddressQuery;
}

export type AddressQuery = Readonly<Record<string, string | number | null | undefined>>;

/** A list without a filter begins at its first page. */
const firstPage: AddressQuery = { page: null, offset: null, after: null };

/** `query`: all of the address's parameters that the list reads, also those that are no filters (sort, limit). */
export function filterChips(path: string, query: AddressQuery, chips: readonly FilterChip[]): Html {
  if (chips.length === 0) return nothing;
  const link = (changes: AddressQuery) => pathWith(path, { ...query, ...firstPage, ...changes });
  const withoutOne = ({ name, without = { [name]: null } }: FilterChip) => link(without);
  const chip = (one: FilterChip) =>
    html`<li><a href="${withoutOne(one)}"><span>${one.label}: <strong><bdi>${one.value}</bdi></strong></span> <span
 aria-hidden="true">×</span><span class="hidden"> (remove this filter)</span></a></li>`;
  return html`<ul class="chips" aria-label="Active filters">${chips.map(chip)}${
    chips.length > 1
      ? html`<li><a class="clear" href="${link(withoutAll(chips))}">Clear all filters</a></li>`
      : nothing
  }</ul>`;
}

function withoutAll(chips: readonly FilterChip[]): AddressQuery {
  return Object.assign({}, ...chips.map(({ name, without = { [name]: null } }) => without));
}
