/** The subset of JSON Schema that the routes use. */
export interface JsonSchema {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  example?: unknown;
  examples?: unknown[];
  format?: string;
  anyOf?: JsonSchema[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  writeOnly?: boolean;
}

/**
 * Returns an example of a schema: its own, or one composed from its properties. Undefined if a required property has
 * none, because a placeholder such as "string" is useless.
 */
export function exampleOf(schema: JsonSchema, shared: Readonly<Record<string, JsonSchema>>): unknown {
  if (schema.example !== undefined) return schema.example;
  if (schema.examples?.[0] !== undefined) return schema.examples[0];
  if (schema.$ref !== undefined) return exampleOf(shared[schema.$ref.split('/').at(-1)!] ?? {}, shared);
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.anyOf !== undefined) return exampleOf(schema.anyOf[0]!, shared);
  if (schema.format === 'uuid') return '0b5c1c1e-6d1f-4f0e-9a53-0f6a2f6a7a11';
  if (schema.items !== undefined) {
    const item = exampleOf(schema.items, shared);
    return item === undefined ? undefined : [item];
  }
  if (schema.properties === undefined) return undefined;
  const fields = Object.entries(schema.properties).map(([name, field]) => [name, exampleOf(field, shared)] as const);
  const isComplete = fields.every(([name, value]) => value !== undefined || !schema.required?.includes(name));
  return isComplete ? Object.fromEntries(fields.filter(([, value]) => value !== undefined)) : undefined;
}
