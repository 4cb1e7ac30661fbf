import { join } from "node:path";
import { Fts5Index } from "#coordinator/tell/search/engine/fts5-index-store";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { engineContract } from "./engine-contract.ts";

async function openAt(path: string) {
  const index = await Fts5Index.open(path);
  return {
    target: index,
    engine: {
      search: async (question: Parameters<Fts5Index["search"]>[0]) => index.search(question),
      configurations: async () => index.configurations(),
      wordsLike: async (word: string) => index.wordsLike(word),
    },
    settled: async () => {},
    reopened: async () => {
      index.close();
      return await openAt(path);
    },
    close: async () => index.close(),
  };
}

engineContract(
  "the index in a file",
  async () => await openAt(join(temporaryFolder("fts5-"), "search.sqlite")),
);
