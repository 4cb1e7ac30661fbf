/** Opens engines without a database, to be filled and asked directly. */

import { Fts5Index } from "#coordinator/tell/search/engine/fts5-index-store";
import { OpenSearchEngine } from "#coordinator/tell/search/engine/opensearch-engine";
import { OpenSearchIndex } from "#coordinator/tell/search/export/opensearch-target";
import { askEngine } from "../engine/open-search.ts";
import type { OpenedEngine } from "./engine-contract.ts";

/** `path` may be ":memory:". */
export async function openFts5(path: string): Promise<OpenedEngine> {
  const index = await Fts5Index.open(path);
  return {
    target: index,
    engine: {
      search: async (question) => index.search(question),
      configurations: async () => index.configurations(),
      wordsLike: async (word) => index.wordsLike(word),
    },
    settled: async () => {},
    reopened: async () => {
      index.close();
      return await openFts5(path);
    },
    close: async () => index.close(),
  };
}

/** The index is deleted in the end. */
export async function openOpenSearch(origin: string, index: string): Promise<OpenedEngine> {
  const place = { origin, index, authorization: null, authorities: null };
  const tell = (words: string) => void process.stderr.write(`${words}\n`);
  const ports = { pause: async () => {}, random: () => 1, onTrouble: tell, onRefused: tell };
  const target = new OpenSearchIndex({ ...place, ...ports });
  const engine = new OpenSearchEngine(place);
  const close = async () => void (await Promise.all([target.close(), engine.close()]));
  return {
    ...{ target, engine },
    settled: async () => void (await askEngine(`${origin}/${index}/_refresh`, { method: "POST" })),
    reopened: async () => {
      await close();
      return await openOpenSearch(origin, index);
    },
    close: async () => {
      await askEngine(`${origin}/${index}`, { method: "DELETE" });
      await close();
    },
  };
}
