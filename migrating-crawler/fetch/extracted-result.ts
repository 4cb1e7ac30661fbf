/**
 * The result of a fetched page with what its body says. Nothing of this needs the site, so its turn is over by
 * then: other hosts of the same address are asked meanwhile. Never throws.
 */
import type { Extracted, FetchedBody } from "../extract/extract-page.ts";
import { failureOf } from "../net/failure.ts";
import { outcomeOfFailure } from "./failure-outcome.ts";
import type { FetchedPage, PageResult } from "./fetch-page.ts";

export interface Extraction {
  readonly extract: (body: FetchedBody) => Promise<Extracted>;
  /** Resolves when the processor may be used for long: probes under way want it quiet. */
  readonly quiet: () => Promise<void>;
}

/** A page that could not be extracted is a failure of ours: the site has answered well. */
export async function extractedResult(
  { result, body }: Pick<FetchedPage, "result" | "body">,
  { extract, quiet }: Extraction,
): Promise<PageResult> {
  if (body === null) return result;
  try {
    const { page, cut } = await extract({ ...body, quiet });
    return { ...result, outcome: withCut(result.outcome, cut), page };
  } catch (error) {
    return { ...result, outcome: outcomeOfFailure(failureOf(error)) };
  }
}

function withCut(outcome: PageResult["outcome"], cut: boolean): PageResult["outcome"] {
  return cut && outcome.type === "fetched" ? { ...outcome, truncated: true } : outcome;
}
