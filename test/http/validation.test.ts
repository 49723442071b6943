import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { compileCheck } from '../../http/validation.ts';

const check = compileCheck(
  Type.Object({
    n: Type.Optional(Type.Literal(1)),
    tone: Type.Optional(Type.Union([Type.Literal('calm'), Type.Literal('kind')])),
    shape: Type.Optional(Type.Union([Type.Object({}), Type.Array(Type.String())])),
    limit: Type.Optional(Type.Union([Type.Literal('none'), Type.Number()])),
    input: Type.Optional(Type.Array(Type.Union([Type.String({ maxLength: 2 }), Type.Object({})]))),
    stop: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })])),
    speed: Type.Optional(Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 4 })),
  }),
);

describe('validation message', () => {
  it.each([
    [{ n: 2 }, 'n must be 1.'],
    [{ tone: 'loud' }, 'tone must be "calm" or "kind".'],
    [{ shape: 5 }, 'shape must be a JSON object or an array.'],
    [{ stop: [] }, 'stop must not have fewer than 1 items.'],
    [{ stop: [5] }, 'stop.0 must be a string.'],
    [{ stop: 5 }, 'stop must be a string or an array.'],
    [{ limit: 'all' }, 'limit must be "none" or a number.'],
    [{ input: [5, 'long'] }, 'input.0 must be a string or a JSON object.'],
    [{ speed: 0 }, 'speed must be more than 0.'],
    [{ speed: 4 }, 'speed must be less than 4.'],
  ])('names the accepted values for %j', (value, message) => {
    expect(check(value)?.message).toBe(message);
  });
});
