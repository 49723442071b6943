import { Avatar, Menu, UnstyledButton, useMantineColorScheme } from '@mantine/core';
import { Link, useNavigate } from '@tanstack/react-router';
import { BookOpen, Check, LogOut, Monitor, Moon, Sun, UserRound } from 'lucide-react';
import { notifyFailed } from '../parts/notify.ts';
import { shellText } from '../text/app.ts';
import { signOut, useSession } from './session.ts';
import { switchWorkspace } from './switch-workspace.ts';
import { toLogin } from './to-login.ts';

const SCHEMES = [
  { scheme: 'light', label: shellText.light, icon: Sun },
  { scheme: 'dark', label: shellText.dark, icon: Moon },
  { scheme: 'auto', label: shellText.auto, icon: Monitor },
] as const;

export function AccountMenu() {
  const { email, workspaces, workspace } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const navigate = useNavigate();
  const change = (id: string) => {
    void switchWorkspace(id);
    void navigate({ to: '/live' });
  };
  const leave = async () => {
    try {
      await signOut();
    } catch (error) {
      notifyFailed(error);
      return;
    }
    toLogin();
  };
  return (
    <Menu position="bottom-end" width={260} shadow="md">
      <Menu.Target>
        <UnstyledButton aria-label={`${shellText.account}: ${email}, ${workspace.name}`}>
          <Avatar size={32} radius="xl" color="blue" aria-hidden>
            <UserRound size={18} />
          </Avatar>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{shellText.workspace}</Menu.Label>
        {workspaces.map(({ id, name: title }) => (
          <Menu.Item key={id} onClick={() => change(id)} rightSection={id === workspace.id && <Check size={14} />}>
            {title}
          </Menu.Item>
        ))}
        <Menu.Label>{shellText.colorScheme}</Menu.Label>
        {SCHEMES.map(({ scheme, label, icon: Icon }) => (
          <Menu.Item
            key={scheme}
            leftSection={<Icon size={14} />}
            onClick={() => setColorScheme(scheme)}
            rightSection={colorScheme === scheme && <Check size={14} />}
          >
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item component={Link} to="/account" leftSection={<UserRound size={14} />}>
          {shellText.account}
        </Menu.Item>
        <Menu.Item component="a" href="/docs" leftSection={<BookOpen size={14} />}>
          {shellText.apiReference}
        </Menu.Item>
        <Menu.Item onClick={leave} leftSection={<LogOut size={14} />}>
          {shellText.signOut}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
