/** A value as whoever reads it has it: nothing of it may be changed. */
export type DeepReadonly<Value> = Value extends object
  ? { readonly [Name in keyof Value]: DeepReadonly<Value[Name]> }
  : Value;
