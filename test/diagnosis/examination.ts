import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Config, loadConfig } from '../../config.ts';
import type { Finding } from '../../diagnosis/finding.ts';

type Found = Finding | readonly Finding[] | null;

/** Runs checks of the doctor in this process, with the settings of a server whose data folder is new. */
export interface Examination extends AsyncDisposable {
  readonly dataDir: string;
  /** Findings of `check` by name, with these settings. */
  findings(
    check: (config: Config) => Found | Promise<Found>,
    env?: Record<string, string>,
  ): Promise<Record<string, Finding>>;
}

export async function openExamination(): Promise<Examination> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tandem-doctor-'));
  const defaults = { TANDEM_DATA_DIR: dataDir, PORT: '0', SIP_PORT: '0' };
  return {
    dataDir,
    async findings(check, env = {}) {
      const found = await check(loadConfig({ ...defaults, ...env }, [], join(dataDir, '.env')));
      const all = found === null ? [] : [found].flat();
      return Object.fromEntries(all.map((finding) => [finding.check, finding]));
    },
    [Symbol.asyncDispose]: () => rm(dataDir, { recursive: true, force: true }),
  };
}
