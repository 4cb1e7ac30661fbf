/** Forms of settings that several rooms share. */
import { z } from "zod";

export const seconds = (most: number) => z.number().positive().max(most);
