/** What the box finds without asking the database: pages and settings. */
import type { Scope } from "#core/actor";
import { policyGroups } from "../settings/catalogue.ts";
import { navigation } from "../web/navigation.ts";

/** Something to open, for those with the scope. */
export interface Place {
  readonly title: string;
  /** What it is or does, in a sentence at most. */
  readonly words: string;
  readonly href: string;
  readonly needs: Scope | null;
  /** Other words by which people look for it. */
  readonly alsoFound: string;
}

/** A page of the navigation; `isMain`: an entry of its own. */
export interface PagePlace extends Place {
  readonly isMain: boolean;
}

/** Other words for pages of the navigation, by path. */
const otherWords: Readonly<Record<string, string>> = {
  "/": "home start",
  "/who": "url host address organisation",
  "/explore": "map subnets ip space tree",
  "/graph": "pagerank links",
  "/fleet/queue": "frontier waiting due backlog",
  "/fleet/in-hand": "in hand leases running",
  "/fleet/failures": "errors",
  "/registry": "rir import data dumps plan apply arin ripe apnic lacnic afrinic",
  "/fleet/versions": "releases software upgrade",
  "/alerts": "warnings incidents mute silence snooze",
  "/policies": "settings configuration change",
  "/storage": "database disk retention",
  "/audit": "history who changed",
  "/sites": "hosts domains",
  "/changes": "feed new gone",
  "/submit": "url add recrawl",
  "/fleet/site-caps": "limit pace crawl-delay slow",
  "/fleet/invitations": "invite add crawler join partner",
  "/fleet/opt-outs": "block exclude site",
  "/fleet/complaints": "abuse report record",
  "/channels": "feed news",
};

const fromNavigation: readonly PagePlace[] = navigation.flatMap((group) =>
  group.entries.flatMap((entry) =>
    (entry.tabs ?? [entry]).map(({ path, name, needs }, at) => ({
      ...{ href: path, needs, isMain: at === 0, alsoFound: otherWords[path] ?? "" },
      title: at === 0 ? entry.name : name,
      words: at === 0 ? group.name : `${group.name} · ${entry.name}`,
    })),
  ),
);

const beside = (href: string, title: string, needs: Scope | null, words: string): PagePlace => ({
  ...{ href, title, needs, words, alsoFound: "", isMain: false },
});

export const pagePlaces: readonly PagePlace[] = [
  ...fromNavigation,
  beside("/tokens", "Tokens", "access-write", "For programs that use the API"),
  beside("/access", "Access", "access-write", "Who is signed in, and sign-in links"),
  beside("/api", "API", null, "Operations, examples and errors"),
];

export const settingPlaces: readonly Place[] = policyGroups.flatMap((group) =>
  group.policies.map(({ name, title, help }) => ({
    title,
    words: `${group.title}: ${help}`,
    href: `/policies#${name}`,
    needs: "read" as const,
    alsoFound: name,
  })),
);
