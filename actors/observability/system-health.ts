import type { ModelDownload } from '../../speech/models/downloads.ts';
import type { EngineStatus } from '../../speech/speech-recognition.ts';
import type { SynthesisEngineStatus } from '../../speech/speech-synthesis.ts';
import type { NodeState } from '../../storage/queries/nodes.ts';

/** Health of this machine and of the other nodes, for the operator. Implemented in `system-health.actor.ts`. */
export interface SystemHealth {
  /** Takes up to 10 seconds. Requests within 15 seconds share the checks. Never rejects because of a broken part. */
  report(): Promise<SystemReport>;
}

export interface SystemCheck {
  /** Unique in a report and stable across reports. */
  id: string;
  name: string;
  status: 'ok' | 'warning' | 'failed';
  message: string;
  /** Advice; null if the check is ok. */
  action: string | null;
}

export interface SystemReport {
  checks: readonly SystemCheck[];
  checkedAt: Date;
  nodes: readonly (NodeState & { isThis: boolean })[];
  /** On this node. */
  media: {
    sessions: number;
    maxSessions: number;
    load: number;
    workers: readonly { utilization: number; latenessMs: number }[];
  };
  /** On this node. */
  recognition: { isRunning: boolean; engines: readonly EngineStatus[] };
  synthesis: { isRunning: boolean; engines: readonly SynthesisEngineStatus[] };
  /** Available language models. */
  languageModels: readonly { id: string; contextTokens: number | null }[];
  downloads: readonly ModelDownload[];
  queues: readonly { name: string; waiting: number; active: number; delayed: number }[];
  versions: { tandem: string; node: string; postgres: string | null };
}
