import { afterAll } from "vitest";

/** Closes it after the file's tests. At the file's top: `const database = await forThisFile(testDatabase())` */
export async function forThisFile<Opened extends { close(): unknown }>(
  opening: Promise<Opened>,
): Promise<Opened> {
  const opened = await opening;
  afterAll(async () => {
    await opened.close();
  });
  return opened;
}
