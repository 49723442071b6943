import { serveThread } from '../../runtime/serve-thread.ts';

export interface GatedThread {
  /** A `gate` of 0 is shut. */
  data: { gate: Int32Array };
  ready: string;
  calls: {
    echo: { request: { text: string }; answer: string };
    noted: { request: object; answer: string[] };
    fail: { request: { code: string | null }; answer: null };
    hang: { request: object; answer: null };
    die: { request: object; answer: null };
    holdDrain: { request: object; answer: undefined };
  };
  reports: string;
  notices: string;
}

/** A thread that becomes ready when its gate opens, as one that loads modules. */
await serveThread<GatedThread>(({ data: { gate }, report }) => {
  Atomics.wait(gate, 0, 0);
  const noted: string[] = [];
  let draining = Promise.resolve();
  return {
    ready: 'as can be',
    calls: {
      echo: ({ text }) => text,
      noted: () => noted,
      fail({ code }) {
        throw Object.assign(new Error('as asked'), code === null ? {} : { code });
      },
      hang() {
        Atomics.wait(gate, 0, 1);
        return null;
      },
      die: () => process.exit(1),
      holdDrain() {
        draining = new Promise(() => {});
      },
    },
    notice(text) {
      noted.push(text);
      report(`noted ${text}`);
    },
    dump: () => ({ noted: noted.length }),
    drain: () => draining,
  };
});
