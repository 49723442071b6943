/** Texts of the frame: sign-in, navigation, states and formats. */

export const apiText = {
  unreachable: 'The server does not answer. Check that it runs and that your network is up, then try again.',
  unexpected: (status: number) => `The server answered ${status} without an explanation. Look at its log.`,
};

export const shellText = {
  title: 'Tandem',
  skip: 'Skip to content',
  navigation: 'Pages',
  openMenu: 'Open the menu',
  closeMenu: 'Close the menu',
  workspace: 'Workspace',
  account: 'Account',
  signOut: 'Log out',
  search: 'Search',
  searchHint: 'Ctrl K',
  colorScheme: 'Color scheme',
  light: 'Light',
  dark: 'Dark',
  auto: 'As the system',
  apiReference: 'API reference',
  offline: 'Offline. Reconnecting to the server.',
  setPassword: 'You have no password yet. Set one to log in next time.',
  setPasswordAction: 'Set a password',
};

export const groupText = { operate: 'Operate', build: 'Build', manage: 'Manage' };

export const pageText = {
  live: 'Live',
  calls: 'Calls',
  phone: 'Phone',
  numbers: 'Numbers and trunks',
  playground: 'Playground',
  wallet: 'Wallet and usage',
  developers: 'Developers',
  people: 'People',
  health: 'Health',
};

export const paletteText = {
  placeholder: 'Go to a page, or find a call by number, reference or id',
  nothing: 'Nothing found',
  pages: 'Pages',
  actions: 'Actions',
  findCalls: (query: string) => `Find calls with "${query}"`,
};

export const signInText = {
  title: 'Log in to Tandem',
  email: 'Email',
  password: 'Password',
  submit: 'Log in',
  forgot:
    'No password? The server prints a one-time link when it starts. An operator makes another one with: bin/tandem users login-link EMAIL',
  linkTitle: 'One-time login',
  linkSubmit: 'Log in with this link',
  linkHint: 'The link works once. Set a password afterwards.',
  otherWay: 'Log in with a password',
};

export const stateText = {
  loading: 'Loading',
  retry: 'Try again',
  signInAgain: 'Log in',
  deniedTitle: 'You do not have access',
  errorTitle: 'This did not work',
  notFoundTitle: 'Page not found',
  notFoundHint: 'The address may be misspelled, or the page belongs to another workspace.',
  home: 'Go to Live',
  rechargeTitle: 'The wallet is empty',
  toWallet: 'Open the wallet',
  requestId: (id: string) => `Request ${id}`,
  denied: 'Ask an owner or admin of this workspace for another role.',
};

export const partText = {
  copy: 'Copy',
  copied: 'Copied',
  cancel: 'Cancel',
  close: 'Close',
  save: 'Save',
  secretHint: 'Copy it now. It is not shown again.',
  none: 'None',
};

export const guardText = {
  noWorkspace: 'You are in no workspace',
  noWorkspaceHint: 'Ask for an invitation, or create a workspace of your own.',
  workspaceName: 'Name',
  createWorkspace: 'Create workspace',
};

export const listText = {
  from: 'From',
  to: 'Until',
  clear: 'Clear filters',
  more: 'Load more',
  failed: 'Loading failed. Try again',
};
