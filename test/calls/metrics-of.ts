import type { Platform } from './platform.ts';

/** Reads `/metrics`; `value` returns a series such as `tandem_calls{state="bridged"}`, or NaN if absent. */
export async function metricsOf({ tandem }: Pick<Platform, 'tandem'>) {
  const text = await (await fetch(`${tandem.url}/metrics`)).text();
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const values = new Map(
    samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
  return { text, value: (series: string) => values.get(series) ?? Number.NaN };
}
