const LEVEL_EXAMPLE = {
  call_id: '2f1f8c1e-5a53-4b1e-8a2b-0c6a1b9a7d10',
  legs: [
    { leg: 'agent', level_dbov: -21, speaking: true },
    { leg: 'customer', level_dbov: -63, speaking: false },
  ],
};

export const LIVE_STREAM_EXAMPLE = [
  'id: 1769851800120-1201:1201:\nevent: snapshot\ndata: {"calls":[],"truncated":false}\n\n',
  `event: level\ndata: ${JSON.stringify(LEVEL_EXAMPLE)}\n\n`,
].join('');
