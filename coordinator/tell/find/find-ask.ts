/** /find: the search box's results as a page, for browsers without scripts and for longer lists. */
import { z } from "zod";
import { list, member, note, picture, plain, present, section, table } from "../../ask/document.ts";
import { nodesHtml } from "../../ask/html-rendering.ts";
import { type Document, operationsOf } from "../../ask/operation.ts";
import { small } from "../../web/components.ts";
import { html } from "../../web/html.ts";
import {
  type FindAnswer,
  type FindPorts,
  type Found,
  type FoundKind,
  find,
  foundAnswer,
  longestQuestion,
  mostOfKind,
} from "./find.ts";

const kindNames: Readonly<Record<FoundKind, string>> = {
  page: "Pages",
  crawler: "Crawlers",
  host: "Hosts",
  who: "Look up",
  setting: "Settings",
  action: "Actions",
};

export const findOperations = {
  find: operationsOf<FindPorts>().get({
    ...{ path: "/api/find", needs: null, tokenToo: true },
    summary: "Find a page, crawler, host or setting by its name",
    description: `What the search box at the top of every page asks. Exact matches come first, then names that begin with the
question, names of which a word begins with it, and names that hold it; of hosts, exact ones, those below the site, and those
that begin with it. Only what the asker may open is found. An empty question is answered with the main pages.`,
    input: z.object({
      q: z
        .string()
        .max(longestQuestion)
        .default("")
        .meta({
          description: `Part of a name, a host, an address, a range or a URL; at most ${longestQuestion} characters.`,
          example: "athens",
        }),
    }),
    output: foundAnswer,
    answer: { description: "What was found" },
    command: {
      ...{
        name: "find",
        takes: "q...",
        says: "find a page, crawler or setting by a part of its name, a host by its beginning",
      },
      help: "\n\nThe same as a page: /find?q=…",
    },
    run: async ({ input: { q }, actor, ports }) => await find(q, actor, ports),
    view: findDocument,
  }),
};

function findDocument({ question, results, more, note: missing }: FindAnswer): Document {
  const kinds = [...new Set(results.map(({ kind }) => kind))];
  const all = table<Found>({
    ...{ label: "Found", rows: results },
    columns: [
      member("kind", "Kind"),
      member("title", "Name"),
      member("words", "What it is"),
      member("href", "Page"),
    ],
    empty: [
      "Nothing of this name can be opened.",
      html`Try a part of the name, a host such as <code>example.org</code>, or an address.`,
    ],
  });
  const sections = kinds.map((kind) =>
    section(
      kindNames[kind],
      [
        list(results.filter((one) => one.kind === kind).map(foundItem)),
        more.includes(kind) && note(`The first ${mostOfKind}; type more of the name to see others.`),
      ],
      { kind: "found" },
    ),
  );
  return {
    title: question === "" ? "Find" : `${question.slice(0, 60)} · Find`,
    hasOwnHeading: true,
    nodes: present([
      picture(html`<h1>${question === "" ? "Find" : html`Find “<bdi>${question}</bdi>”`}</h1>
<form class="ask" action="/find" method="get" role="search"><label class="hidden" for="find-page">Page, crawler, host or setting</label>
<div class="field"><input id="find-page" name="q" type="search" maxlength="${longestQuestion}" value="${question}"
placeholder="Page, crawler, host or setting" autocomplete="off"><button>Find</button></div></form>`),
      missing !== null && plain(html`<span role="status">${missing}</span>`),
      results.length === 0 ? all : picture(nodesHtml(sections), all),
    ]),
  };
}

const foundItem = ({ title, words, href }: Found) =>
  html`<a href="${href}"><bdi>${title}</bdi></a> ${small(html`<bdi>${words}</bdi>`)}`;
