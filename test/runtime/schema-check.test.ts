import { Compile } from 'typebox/schema';
import { describe, expect, it } from 'vitest';
import { schemaCheck } from '../../runtime/schema-check.ts';
import * as fc from '../properties.ts';

const Person = {
  type: 'object',
  required: ['name', 'age'],
  properties: {
    name: { type: 'string', minLength: 1, pattern: '^[a-z]*$' },
    age: { type: ['integer', 'null'], minimum: 0, maximum: 150 },
    tags: { type: 'array', items: { anyOf: [{ const: 'a' }, { enum: ['b', 3] }, { type: 'null' }] }, maxItems: 2 },
  },
  additionalProperties: false,
} as const;

describe('schema check', () => {
  it('accepts and rejects the same JSON as TypeBox', () => {
    const [check, reference] = [schemaCheck(Person), Compile(Person)];
    const value = fc.oneof(
      fc.jsonValue(),
      fc.record(
        {
          name: fc.constantFrom('ann', '', 'Ann', 7, null),
          age: fc.constantFrom(0, 150, 151, -1, 1.5, null, '7'),
          tags: fc.array(fc.constantFrom('a', 'b', 3, null, 'c', [])),
          more: fc.constant(1),
        },
        { requiredKeys: [] },
      ),
    );
    fc.assert(fc.property(value, (one) => check.matches(one) === reference.Check(one)));
  });

  it('rejects undefined, which is not JSON', () => {
    expect(schemaCheck({}).matches(undefined)).toBe(false);
  });

  it.each([
    [{ name: 'ann', age: 1 }, null],
    [{ name: '', age: 1 }, '/name: String is too short (0 < 1).'],
    [{ name: 'ann', age: 1, size: 2 }, '/size: This is not allowed here.'],
    [[], '/: Instance type "array" is invalid. Expected "object".'],
  ])('reports the difference in %j: %s', (value, problem) => {
    expect(schemaCheck(Person).problemOf(value)).toBe(problem);
  });
});
