/** Lists how a value violates a JSON schema, with paths; supports what our OpenAPI document uses. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly oneOf?: readonly JsonSchema[];
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
}

type Schemas = Readonly<Record<string, JsonSchema>>;

export function faultsOf(value: unknown, schema: JsonSchema, schemas: Schemas, path = "$"): string[] {
  if (schema.$ref) {
    const named = schemas[schema.$ref.replace("#/components/schemas/", "")];
    return named ? faultsOf(value, named, schemas, path) : [`${path}: no schema ${schema.$ref}`];
  }
  if (schema.oneOf) {
    const tried = schema.oneOf.map((one) => faultsOf(value, one, schemas, path));
    return tried.some((faults) => faults.length === 0) ? [] : (tried[0] ?? []);
  }
  const types = [schema.type ?? []].flat();
  const own =
    types.length > 0 &&
    !types.includes(typeOf(value)) &&
    !(types.includes("number") && typeOf(value) === "integer");
  if (own) return [`${path}: is ${typeOf(value)}, not ${types.join(" or ")}`];
  if (schema.enum && !schema.enum.includes(value))
    return [`${path}: ${String(value)} is not one of ${schema.enum.join(", ")}`];
  if (Array.isArray(value)) {
    return schema.items
      ? value.flatMap((one, index) => faultsOf(one, schema.items!, schemas, `${path}[${index}]`))
      : [];
  }
  return typeof value === "object" && value !== null ? objectFaults(value, schema, schemas, path) : [];
}

function objectFaults(value: object, schema: JsonSchema, schemas: Schemas, path: string): string[] {
  const missing = (schema.required ?? [])
    .filter((name) => !(name in value))
    .map((name) => `${path}.${name}: is missing`);
  const others = schema.additionalProperties;
  const inner = Object.entries(value).flatMap(([name, one]) => {
    const described = schema.properties?.[name] ?? (typeof others === "object" ? others : undefined);
    if (described) return faultsOf(one, described, schemas, `${path}.${name}`);
    return others === false ? [`${path}.${name}: is not described`] : [];
  });
  return [...missing, ...inner];
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}
