/** Set up for each test file, before its own hooks: so it runs after them, when all that works in a folder has ended. */
import { afterAll } from "vitest";
import { removeTemporaryFolders } from "./temporary-folder.ts";

afterAll(removeTemporaryFolders);
