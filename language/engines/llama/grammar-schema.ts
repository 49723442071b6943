import { isObject } from '../../../runtime/is-object.ts';
import type { JsonSchema } from '../../llm.ts';
import { AnswerError } from './answer-error.ts';

/**
 * Converts a JSON Schema to the library's grammar schema: the model writes every property of an object, in the order of
 * the schema, and no other. The caller must check what a grammar cannot express: patterns, numeric bounds, conditions.
 * The size is bounded, because an untrusted schema could make a grammar so large that the process crashes.
 * @throws AnswerError `refused`
 */
export function grammarSchemaOf(schema: JsonSchema, { optionalMayBeNull = false } = {}): GrammarSchema {
  return new Conversion(schema, optionalMayBeNull).root();
}

export type GrammarSchema = Readonly<Record<string, unknown>>;

const MOST_NODES = 2000;
const DEEPEST = 48;
/** Limit of characters and items: a grammar repeats its rule that often. */
const MOST_REPETITIONS = 1000;

const SCALARS = new Set<unknown>(['string', 'number', 'integer', 'boolean', 'null']);
const FORMATS = new Set<unknown>(['date-time', 'date', 'time']);
const ANYTHING: GrammarSchema = {
  oneOf: [
    { type: ['string', 'number', 'boolean', 'null'] },
    { type: 'object', additionalProperties: true },
    { type: 'array' },
  ],
};
/** The library escapes only tabs and line ends as JSON requires. */
const UNWRITABLE = /[^\P{Cc}\t\r\n]|\p{Cs}/u;
const REFERENCE = /^#\/(?:\$defs|definitions)\/([^/]+)$/;

class Conversion {
  readonly #schema: JsonSchema;
  readonly #optionalMayBeNull: boolean;
  readonly #definitions: Map<string, unknown>;
  #nodes = 0;

  constructor(schema: JsonSchema, optionalMayBeNull: boolean) {
    this.#schema = schema;
    this.#optionalMayBeNull = optionalMayBeNull;
    this.#definitions = new Map(
      [schema.definitions, schema.$defs].flatMap((definitions) =>
        isObject(definitions) ? Object.entries(definitions) : [],
      ),
    );
  }

  root(): GrammarSchema {
    const root = this.#convert(this.#schema, 0);
    if (this.#definitions.size === 0) return root;
    const definitions = [...this.#definitions.values()].map((definition, index) => [
      `d${index}`,
      this.#convert(definition, 1),
    ]);
    return { oneOf: [root], $defs: Object.fromEntries(definitions) };
  }

  #convert(schema: unknown, depth: number): GrammarSchema {
    this.#nodes++;
    if (this.#nodes > MOST_NODES || depth > DEEPEST) throw refusal('is too large');
    if (schema === true || schema === undefined) return ANYTHING;
    if (!isObject(schema)) throw refusal('contains an invalid schema');
    if (typeof schema.$ref === 'string') return this.#reference(schema.$ref);
    if ('const' in schema) return this.#literal(schema.const, depth);
    if (Array.isArray(schema.enum)) return this.#oneOf(schema.enum, (value) => this.#literal(value, depth + 1));
    for (const choice of [schema.oneOf, schema.anyOf]) {
      if (Array.isArray(choice)) return this.#oneOf(choice, (one) => this.#convert(one, depth + 1));
    }
    if (Array.isArray(schema.allOf)) {
      if (schema.allOf.length !== 1) throw refusal('uses allOf, which a grammar cannot hold');
      return this.#convert(schema.allOf[0], depth + 1);
    }
    if (Array.isArray(schema.type)) {
      return this.#oneOf(schema.type, (type) => this.#convert({ ...schema, type }, depth + 1));
    }
    return this.#ofType(schema, depth);
  }

  #ofType(schema: JsonSchema, depth: number): GrammarSchema {
    const { type = isObject(schema.properties) ? 'object' : 'items' in schema ? 'array' : undefined } = schema;
    if (type === undefined) return ANYTHING;
    if (type === 'object') return this.#object(schema, depth);
    if (type === 'array') return this.#array(schema, depth);
    if (!SCALARS.has(type)) throw refusal('names a type that JSON does not have');
    if (type !== 'string') return { type };
    if (FORMATS.has(schema.format)) return { type, format: schema.format };
    return { type, ...repetitions(schema, { least: 'minLength', most: 'maxLength' }) };
  }

  #object({ properties, additionalProperties, required }: JsonSchema, depth: number): GrammarSchema {
    const known = isObject(properties) ? Object.entries(properties) : [];
    if (known.length === 0) {
      if (additionalProperties === false) return { type: 'object', properties: {} };
      const values = isObject(additionalProperties) ? this.#convert(additionalProperties, depth + 1) : true;
      return { type: 'object', additionalProperties: values };
    }
    const isRequired = new Set(Array.isArray(required) ? required : []);
    return {
      type: 'object',
      properties: ownTable(
        known.map(([name, schema]) => {
          const converted = this.#convert(schema, depth + 1);
          const isOptional = this.#optionalMayBeNull && !isRequired.has(name);
          return [name, isOptional ? { oneOf: [converted, { type: 'null' }] } : converted];
        }),
      ),
    };
  }

  #array(schema: JsonSchema, depth: number): GrammarSchema {
    const first = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
    const bounds = repetitions(schema, { least: 'minItems', most: 'maxItems' });
    return {
      type: 'array',
      ...(schema.items === undefined || schema.items === false
        ? {}
        : { items: this.#convert(schema.items, depth + 1) }),
      ...(first.length === 0 ? {} : { prefixItems: first.map((item) => this.#convert(item, depth + 1)) }),
      ...bounds,
      ...(schema.items === false ? { maxItems: first.length } : {}),
    };
  }

  #literal(value: unknown, depth: number): GrammarSchema {
    this.#nodes++;
    if (this.#nodes > MOST_NODES || depth > DEEPEST) throw refusal('is too large');
    if (Array.isArray(value)) {
      if (value.length === 0) return { type: 'array', maxItems: 0 };
      const items = value.map((item) => this.#literal(item, depth + 1));
      return { type: 'array', prefixItems: items, minItems: items.length, maxItems: items.length };
    }
    if (isObject(value)) {
      const properties = Object.entries(value).map(([name, one]) => [name, this.#literal(one, depth + 1)] as const);
      return { type: 'object', properties: ownTable(properties) };
    }
    if (typeof value === 'string' && UNWRITABLE.test(value)) throw refusal('holds control characters');
    return { const: value };
  }

  #oneOf(choices: readonly unknown[], convert: (choice: unknown) => GrammarSchema): GrammarSchema {
    if (choices.length === 0) throw refusal('leaves no choice');
    const [only, ...others] = choices.map(convert);
    return only !== undefined && others.length === 0 ? only : { oneOf: [only, ...others] };
  }

  #reference(reference: string): GrammarSchema {
    const name = REFERENCE.exec(reference)?.[1];
    const index = name === undefined ? -1 : [...this.#definitions.keys()].indexOf(name);
    if (index < 0) throw refusal('refers to what it does not define');
    return { $ref: `#/$defs/d${index}` };
  }
}

/** Omits a maximum that is too large for a grammar, because the answer stays valid without it. */
function repetitions(schema: JsonSchema, { least, most }: { least: string; most: string }): GrammarSchema {
  const atLeast = countOf(schema[least]) ?? 0;
  const atMost = countOf(schema[most]);
  if (atLeast > MOST_REPETITIONS) throw refusal('asks for more than a grammar can count');
  if (atMost !== null && atMost < atLeast) throw refusal('leaves no choice');
  return {
    ...(atLeast > 0 ? { [least]: atLeast } : {}),
    ...(atMost !== null && atMost <= MOST_REPETITIONS ? { [most]: atMost } : {}),
  };
}

function countOf(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? Math.floor(value) : null;
}

function ownTable(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  for (const [name] of entries) {
    if (name === '__proto__' || UNWRITABLE.test(name)) throw refusal('names a property as it may not');
  }
  return Object.fromEntries(entries);
}

function refusal(reason: string): AnswerError {
  return new AnswerError('refused', `the JSON schema ${reason}`);
}
