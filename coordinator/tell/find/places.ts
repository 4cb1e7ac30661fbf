/** Pages and settings, which the search box finds without the database. */
import type { Scope } from "#core/actor";
import { policyGroups } from "../../run/settings/catalogue.ts";
import { type Listed, placedPages } from "../../web/navigation.ts";

/** Something to open, for people with the scope. */
export interface Place {
  readonly title: string;
  /** At most a sentence. */
  readonly words: string;
  readonly href: string;
  readonly needs: Scope | null;
  /** Other words that people search for. */
  readonly alsoFound: string;
}

/** A page of the navigation; `isMain` marks a top-level entry. */
export interface PagePlace extends Place {
  readonly isMain: boolean;
}

/** The pages that operations place in the navigation, and those that only the search finds. */
export const pagePlacesOf = (operations: readonly Listed[]): readonly PagePlace[] =>
  placedPages(operations).map(({ path, needs, groupName, entry, tab, alsoFound = "", summary }, at, all) => {
    const isFirst = all.findIndex((one) => one.groupName === groupName && one.entry === entry) === at;
    const place = isFirst || groupName === null ? groupName : `${groupName} · ${entry}`;
    return {
      ...{ href: path, needs, alsoFound, isMain: isFirst && groupName !== null },
      ...{ title: isFirst ? entry : (tab ?? entry), words: place ?? summary },
    };
  });

export const settingPlaces: readonly Place[] = policyGroups.flatMap((group) =>
  group.policies.map(({ name, title, help }) => ({
    title,
    words: `${group.title}: ${help}`,
    href: `/policies#${name}`,
    needs: "read" as const,
    alsoFound: name,
  })),
);
