import { type Schema, Validator } from '@cfworker/json-schema';
import type { Static } from 'typebox';

export interface SchemaCheck<T> {
  matches(value: unknown): value is T;
  /**
   * First difference between a value and the schema, such as `/languages: Array has too few items (0 < 1).` Null if it
   * matches.
   */
  problemOf(value: unknown): string | null;
}

/**
 * Checks messages of threads and child processes against a JSON Schema (draft 2020-12). TypeBox compiles faster checks,
 * but loads 235 modules in 160 ms, which every child process would pay at its start.
 * @param schema must not be changed afterwards
 */
export function schemaCheck<const S extends object>(schema: S): SchemaCheck<Static<S>> {
  const validator = new Validator(schema as Schema);
  return {
    // The validator throws for undefined, which is not JSON.
    matches: (value): value is Static<S> => value !== undefined && validator.validate(value).valid,
    problemOf(value) {
      const error = validator.validate(value).errors.at(-1);
      if (error === undefined) return null;
      return `${error.instanceLocation.slice(1) || '/'}: ${error.keyword === 'false' ? 'This is not allowed here.' : error.error}`;
    },
  };
}
