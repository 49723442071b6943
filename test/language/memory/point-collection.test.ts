import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import openWabt from 'wabt';
import { ByteRows, DOT_PRODUCTS_WASM } from '../../../language/memory/dot-products.ts';
import { pointOf } from '../../../language/memory/point.ts';
import { PointCollection } from '../../../language/memory/point-collection.ts';
import * as fc from '../../properties.ts';

const byte = fc.integer({ min: -127, max: 127 });

describe('dot products', () => {
  it('match the assembled source', async () => {
    const source = await readFile(new URL('../../../language/memory/dot-products.wat', import.meta.url), 'utf8');
    const assembled = (await openWabt()).parseWat('dot-products.wat', source, { simd: true }).toBinary({}).buffer;
    expect(Buffer.from(assembled).toString('base64')).toBe(DOT_PRODUCTS_WASM);
  });

  it('match JavaScript while rows are added and removed', () => {
    const dimensions = fc.integer({ min: 1, max: 70 });
    const vectors = dimensions.chain((size) => {
      const vector = fc.array(byte, { minLength: size, maxLength: size });
      return fc.tuple(
        vector,
        fc.array(vector, { minLength: 1, maxLength: 150 }),
        fc.array(fc.nat(), { maxLength: 40 }),
      );
    });
    fc.assert(
      fc.property(vectors, ([query, rows, removals]) => {
        const stored = new ByteRows(query.length);
        const expected = rows.map((row) => row.reduce((sum, value, at) => sum + value * query[at]!, 0));
        for (const row of rows) stored.push(bytesOf(row));
        for (const removal of removals.slice(0, rows.length - 1)) {
          const index = removal % stored.count;
          stored.remove(index);
          const last = expected.pop()!;
          if (index < expected.length) expected[index] = last;
        }
        expect([...stored.dotsWith(bytesOf(query))]).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  });
});

describe('point collection', () => {
  it('returns the same nearest unit of each memory as a linear search', () => {
    const unit = fc.record({
      unitId: fc.nat(60),
      memory: fc.nat(12),
      vector: fc.array(byte, { minLength: 5, maxLength: 5 }),
    });
    const change = fc.oneof({ weight: 3, arbitrary: unit }, { weight: 1, arbitrary: fc.nat(60) });
    const query = fc
      .array(byte, { minLength: 5, maxLength: 5 })
      .filter((vector) => vector.some((value) => value !== 0));
    fc.assert(
      fc.property(
        fc.array(change, { maxLength: 80 }),
        query,
        fc.integer({ min: 0, max: 8 }),
        fc.option(fc.array(fc.nat(60))),
        (changes, asked, limit, among) => {
          const points = new PointCollection(5);
          const known = new Map<number, { memory: number; vector: number[] }>();
          for (const step of changes) {
            if (typeof step === 'number') {
              points.remove(step);
              known.delete(step);
            } else {
              points.add({ unitId: step.unitId, memoryId: `m${step.memory}`, bytes: bytesOf(step.vector) });
              known.delete(step.unitId);
              if (step.vector.some((value) => value !== 0)) known.set(step.unitId, step);
            }
          }
          const found = points.nearestTo(bytesOf(asked), { limit, among: among && new Set(among) });
          const best = new Map<number, number>();
          for (const [unitId, { memory, vector }] of known) {
            if (among !== null && !among.includes(unitId)) continue;
            best.set(memory, Math.max(best.get(memory) ?? -2, cosine(asked, vector)));
          }
          const expected = [...best.values()].sort((a, b) => b - a).slice(0, limit);
          expect(found.compared).toBe(known.size);
          expect(found.nearest).toHaveLength(expected.length);
          found.nearest.forEach((near, place) => {
            expect(near.cosine).toBeCloseTo(expected[place]!, 5);
            expect(`m${known.get(near.unitId)!.memory}`).toBe(near.memoryId);
          });
          expect(new Set(found.nearest.map(({ memoryId }) => memoryId)).size).toBe(found.nearest.length);
        },
      ),
    );
  });

  it('ignores points of other dimensions', () => {
    const points = new PointCollection(3);
    points.add({ unitId: 1, memoryId: 'a', bytes: bytesOf([1, 2]) });
    points.add({ unitId: 2, memoryId: 'b', bytes: bytesOf([1, 2, 3]) });
    expect(points.size).toBe(1);
    expect(points.nearestTo(bytesOf([1]), { limit: 9, among: null })).toEqual({
      nearest: [],
      compared: 0,
      sumOfCosines: 0,
    });
    expect(points.nearestTo(bytesOf([0, 0, 0]), { limit: 9, among: null }).nearest).toEqual([]);
  });

  it('releases the ids of removed memories', () => {
    const points = new PointCollection(1);
    for (let at = 0; at < 20_000; at++) {
      points.add({ unitId: at, memoryId: `memory ${at}`, bytes: bytesOf([1]) });
      points.remove(at - 2);
    }
    expect(points.bytes).toBeLessThan(200_000);
    expect(points.nearestTo(bytesOf([1]), { limit: 9, among: null }).nearest.map(({ memoryId }) => memoryId)).toEqual([
      'memory 19998',
      'memory 19999',
    ]);
  });

  it('loses almost no direction by quantization to bytes', () => {
    const value = fc.double({ min: -1, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.array(value, { minLength: 64, maxLength: 64 }), (values) => {
        fc.pre(Math.hypot(...values) > 0.1);
        const kept = [...new Int8Array(pointOf(Float32Array.from(values)).buffer)];
        expect(cosine(values, kept)).toBeGreaterThan(0.999);
      }),
    );
  });
});

function bytesOf(values: readonly number[]): Uint8Array {
  return new Uint8Array(Int8Array.from(values).buffer);
}

function cosine(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, at) => sum + value * b[at]!, 0) / (Math.hypot(...a) * Math.hypot(...b));
}
