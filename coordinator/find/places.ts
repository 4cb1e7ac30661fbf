/** What the box finds without asking the database: settings, and what people come to do. */
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
  "/registry": "rir import dumps arin ripe apnic lacnic afrinic",
  "/fleet/versions": "releases software upgrade",
  "/alerts": "warnings incidents",
  "/policies": "settings configuration",
  "/storage": "database disk retention",
  "/audit": "history who changed",
  "/sites": "hosts domains",
  "/changes": "feed new gone",
  "/submit": "url add recrawl",
  "/fleet/site-caps": "limit pace crawl-delay",
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

const place = (title: string, href: string, needs: Scope | null, words: string, alsoFound = ""): Place => ({
  ...{ title, href, needs, words, alsoFound },
});

export const actionPlaces: readonly Place[] = [
  place("Invite a crawler", "/fleet/invite", "fleet-write", "A link for a partner who joins", "add join"),
  place(
    "Import registry data",
    "/registry",
    "registry-write",
    "Plan and apply dumps of the registries",
    "rir",
  ),
  place("Mute an alert", "/alerts", "fleet-write", "Until an end that you choose", "silence snooze"),
  place("Change a policy", "/policies", "policy-write", "With what a change would come to", "setting config"),
  place(
    "Cap a site",
    "/fleet/site-caps",
    "policy-write",
    "The pace at a site, and all below it",
    "slow limit",
  ),
  place(
    "Opt a site out",
    "/fleet/opt-outs",
    "fleet-write",
    "So that nothing of it is crawled",
    "block exclude",
  ),
  place(
    "Record a complaint",
    "/fleet/complaints",
    "fleet-write",
    "With what was done about it",
    "abuse report",
  ),
  place("Submit URLs", "/submit", "url-write", "To be fetched, or fetched again", "recrawl refetch add"),
  place("Add a channel", "/channels", "policy-write", "Hosts that are fetched more often", "feed news"),
  place("Export the fleet", "/fleet?format=csv", "read", "All crawlers as CSV", "download spreadsheet"),
  place("Create a token", "/tokens", "access-write", "For programs that use the API", "key"),
  place("Issue a sign-in link", "/access", "access-write", "For a person, with a role", "invite user login"),
  place("Sign in", "/sign-in", null, "With a link from an operator", "login"),
  place("See your account", "/account", null, "Sessions", "sign out logout profile"),
];

/** What is done with one crawler: `drain amsterdam`. On its page, each asks before it does anything. */
export const crawlerActions: readonly {
  readonly verb: string;
  readonly words: string;
  /** Partners do this with their own. */
  readonly partnersToo: boolean;
}[] = [
  { verb: "Drain", words: "Its subnets go to other crawlers", partnersToo: true },
  { verb: "Resume", words: "After draining", partnersToo: true },
  { verb: "Reissue credentials of", words: "When its key is lost or known to others", partnersToo: false },
  { verb: "Remove", words: "Revoke its key for good", partnersToo: false },
];
