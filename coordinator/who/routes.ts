/** The views that everybody starts with: who crawls what, and search. */

import type { NameResolver } from "#core/name-resolver";
import type { CrawlScope } from "../frontier/frontier.ts";
import type { FrontierOrder } from "../frontier/order/strategies.ts";
import type { OverviewReads } from "../overview/overview-reads.ts";
import type { PageReads } from "../search/page-facts.ts";
import { addSearchViews } from "../search/routes.ts";
import type { SearchReads } from "../search/search-answer.ts";
import { wantsJson } from "../web/guard.ts";
import type { PageViewer } from "../web/page-frame.ts";
import type { AskedView, Views } from "../web/views.ts";
import { answerWho, maxQuestionLength } from "./answer.ts";
import { whoBody, whoStart } from "./page.ts";
import type { WhoReads } from "./reads.ts";
import { type WhoAnswer, whoApi } from "./who-api.ts";
import { verdictOf } from "./words.ts";

export interface ViewPorts {
  readonly reads: WhoReads & SearchReads & PageReads & OverviewReads;
  readonly resolver: NameResolver;
  readonly scope: CrawlScope;
  readonly order?: FrontierOrder;
  /** The coordinator's own; left out: every host is its own. */
  readonly domainSets?: readonly string[];
}

export function addViews(views: Views, ports: ViewPorts): void {
  views.describe({
    path: "/who",
    operation: whoApi.who,
    view: async (asked) => await whoView(asked, ports),
  });
  addSearchViews(views, ports.reads);
}

async function whoView({ request, query, now }: AskedView, ports: ViewPorts) {
  const question = query("q");
  if (question.length > maxQuestionLength)
    return `The question is longer than ${maxQuestionLength} characters.`;
  if (question.trim() === "") {
    if (wantsJson(request)) return "Ask with ?q=, for example /api/who?q=www.example.org";
    return { status: 200, value: null, title: "Who crawls it", body: whoStart };
  }
  const value: WhoAnswer = await answerWho(question, ports, now);
  return {
    status: value.found ? 200 : 404,
    value,
    title: verdictOf(value),
    body: (viewer: PageViewer) => whoBody(value, viewer),
  };
}
