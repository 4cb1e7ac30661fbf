/** The views that everybody starts with: who crawls what, and search. */
import type { FrontierOrder } from "#core/order/order-strategies";
import { answerWho } from "../flows/answer-who.ts";
import type { PageReads } from "../flows/page-facts.ts";
import type { CrawlScope, NameResolver } from "../flows/ports.ts";
import { maxQuestionLength } from "../flows/read-question.ts";
import type { SearchReads } from "../flows/search-ports.ts";
import type { OverviewReads } from "../flows/show-overview.ts";
import type { WhoAnswer } from "../flows/who-answer.ts";
import type { WhoReads } from "../flows/who-reads.ts";
import { verdictOf } from "../flows/who-words.ts";
import { whoBody, whoStart } from "../web/who-page.ts";
import { wantsJson } from "./http-guard.ts";
import { addSearchViews } from "./search-routes.ts";
import type { AskedView, Shown, Views } from "./views.ts";

export interface ViewPorts {
  readonly reads: WhoReads & SearchReads & PageReads & OverviewReads;
  readonly resolver: NameResolver;
  readonly scope: CrawlScope;
  readonly order?: FrontierOrder;
  /** The coordinator's own; left out: every host is its own. */
  readonly domainSets?: readonly string[];
}

export function addViews(views: Views, ports: ViewPorts): void {
  views.add({
    path: "/who",
    api: "/api/who",
    section: "/who",
    needs: "read",
    view: async (asked) => await whoView(asked, ports),
  });
  addSearchViews(views, ports.reads);
}

async function whoView({ request, query, now }: AskedView, ports: ViewPorts): Promise<Shown | string> {
  const question = query("q");
  if (question.length > maxQuestionLength)
    return `The question is longer than ${maxQuestionLength} characters.`;
  if (question.trim() === "") {
    if (wantsJson(request)) return "Ask with ?q=, for example /api/who?q=www.example.org";
    return { status: 200, value: null, title: "Who crawls it", body: whoStart };
  }
  const value: WhoAnswer = await answerWho(question, ports, now);
  return { status: value.found ? 200 : 404, value, title: verdictOf(value), body: () => whoBody(value) };
}
