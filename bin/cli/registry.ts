import type { Command } from './command.ts';

export interface Registered {
  name: string;
  /** Its line in `tandem --help`. */
  summary: string;
  /** Loads only the command that runs, because most need a small part of the program. */
  load: () => Promise<Command>;
}

/** All commands, in the order of `tandem --help`. A new one is a file in `commands/` and an entry here. */
export const COMMANDS: readonly Registered[] = [
  {
    name: 'serve',
    summary: 'run the server, as npm start does',
    load: async () => (await import('./commands/serve.ts')).serveCommand,
  },
  {
    name: 'demo',
    summary: 'start everything and place a call between two softphones',
    load: async () => (await import('./commands/demo.ts')).demoCommand,
  },
  {
    name: 'call',
    summary: 'place, follow, hang up and list calls',
    load: async () => (await import('./commands/call.ts')).callCommand,
  },
  {
    name: 'recordings',
    summary: 'play and download recordings, and set how long they are kept',
    load: async () => (await import('./commands/recordings.ts')).recordingsCommand,
  },
  {
    name: 'transcribe',
    summary: 'transcribe an audio file',
    load: async () => (await import('./commands/transcribe.ts')).transcribeCommand,
  },
  {
    name: 'speak',
    summary: 'synthesise speech into an audio file',
    load: async () => (await import('./commands/speak.ts')).speakCommand,
  },
  {
    name: 'voices',
    summary: 'list, clone and delete voices',
    load: async () => (await import('./commands/voices.ts')).voicesCommand,
  },
  {
    name: 'chat',
    summary: 'chat with a language model, or correct a text',
    load: async () => (await import('./commands/chat.ts')).chatCommand,
  },
  {
    name: 'memory',
    summary: 'store and search memories and documents',
    load: async () => (await import('./commands/memory.ts')).memoryCommand,
  },
  {
    name: 'judge',
    summary: 'judge texts and calls by a rubric',
    load: async () => (await import('./commands/judge.ts')).judgeCommand,
  },
  {
    name: 'trunks',
    summary: 'list, add and change SIP trunks',
    load: async () => (await import('./commands/trunks.ts')).trunksCommand,
  },
  {
    name: 'numbers',
    summary: 'set what becomes of inbound calls, and verify numbers of other workspaces',
    load: async () => (await import('./commands/numbers.ts')).numbersCommand,
  },
  {
    name: 'rules',
    summary: 'show and change the limits on calls, and the do-not-call list',
    load: async () => (await import('./commands/rules.ts')).rulesCommand,
  },
  {
    name: 'privacy',
    summary: 'erase the data about a phone number',
    load: async () => (await import('./commands/privacy.ts')).privacyCommand,
  },
  {
    name: 'keys',
    summary: 'list, create and revoke API keys',
    load: async () => (await import('./commands/keys.ts')).keysCommand,
  },
  {
    name: 'wallet',
    summary: 'show and top up a wallet',
    load: async () => (await import('./commands/wallet.ts')).walletCommand,
  },
  {
    name: 'prices',
    summary: 'show and change prices',
    load: async () => (await import('./commands/prices.ts')).pricesCommand,
  },
  {
    name: 'workspaces',
    summary: 'list and create workspaces, list their members',
    load: async () => (await import('./commands/workspaces.ts')).workspacesCommand,
  },
  {
    name: 'users',
    summary: 'invite people, and let a user set a new password',
    load: async () => (await import('./commands/users.ts')).usersCommand,
  },
  {
    name: 'models',
    summary: 'list, fetch and check speech models',
    load: async () => (await import('./commands/models.ts')).modelsCommand,
  },
  {
    name: 'webrtc',
    summary: 'install the worker that connects browsers to calls',
    load: async () => (await import('./commands/webrtc.ts')).webrtcCommand,
  },
  {
    name: 'backup',
    summary: 'back up the database and all objects to one file',
    load: async () => (await import('./commands/backup.ts')).backupCommand,
  },
  {
    name: 'restore',
    summary: 'restore a backup',
    load: async () => (await import('./commands/backup.ts')).restoreCommand,
  },
  {
    name: 'doctor',
    summary: 'check what the server needs, and how to fix it',
    load: async () => (await import('./commands/doctor.ts')).doctorCommand,
  },
];
