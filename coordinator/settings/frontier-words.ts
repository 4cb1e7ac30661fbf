/** The policies of leases and of the frontier's order in words; part of policy-words.ts. */
import type { PolicyWords } from "./descriptions.ts";

export const frontierWords = {
  "lease.seconds": {
    title: "Length of a lease",
    help: "A crawler has so long to fetch what it was handed; then it returns, and may go to another.",
    unit: "s",
    origin: "our judgement",
  },
  "lease.urlsPerHost": {
    title: "URLs of a host in a lease",
    help: "So many URLs of one host are handed to a crawler together, which keeps a connection in use.",
    unit: "URLs",
    origin: "our judgement",
  },
  "lease.hostsPerRequest": {
    title: "Hosts in one answer",
    help: "A crawler that asks for work gets so many hosts at once at most.",
    unit: "hosts",
    origin: "our judgement",
  },
  "frontier.order": {
    title: "Order of the URLs",
    help: "Decides which due URLs of a host are fetched first: the longest due, what most pages link to, Anansi's two lists, the highest PageRank, or what is expected to be most out of date.",
    unit: null,
    origin:
      "our judgement, the longest due costs nothing; what the others have sooner is measured, test/bench/results/anansi.md",
  },
  "frontier.newShare": {
    title: "New URLs in a lease",
    help: "So large a share of a lease is for URLs that were never visited, the rest for visited ones that are due again; the order breadth-first does not ask.",
    unit: "of its URLs",
    origin: "Anansi, section 5.1, nine new ones to one old",
  },
  "frontier.worthShare": {
    title: "Hosts that go by their best URL",
    help: "Of the hosts that a crawler is handed so large a share goes to those whose best due URL comes first in the order, the rest to those that have been due the longest, so that none is forgotten; 0 lets hosts take turns alone, and the order breadth-first does not ask.",
    unit: "of the hosts",
    origin: "our judgement; measured, test/bench/results/anansi.md",
  },
  "frontier.linkTypeChecks": {
    title: "Links asked for their type",
    help: "Of each page so many links to its own site are asked for by HEAD, in turns of the host, and those that are no page are not fetched; each check takes as long as a fetch, and 0 means none.",
    unit: "links a page",
    origin: "our judgement; Anansi, section 4.2, asks them all",
  },
} as const satisfies Readonly<Record<string, PolicyWords>>;
