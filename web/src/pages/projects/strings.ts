import { count, number, texts } from "../../i18n/index";

export const t = texts({
  en: {
    note: "A memory belongs to one project, or to all.",
    count: (n: number) => count(n, "project", "projects"),
    weeks: "12 weeks",
    memories: "memories",
    sessions: "sessions",
    last: "last active",
    turns: (n: number, weeks: number) => `${count(n, "turn", "turns")} in ${weeks} weeks`,
    aliases: (names: string) => `also ${names}`,
    dependsOn: (names: string) => `depends on ${names}`,
    empty: "No projects yet",
    emptyNote: "A project is created by the first session in its folder, or with nacre store --project NAME.",
  },
  zh: {
    note: "一条记忆属于一个项目,或在所有项目中成立。",
    count: (n: number) => `${number(n)} 个项目`,
    weeks: "12 周",
    memories: "条记忆",
    sessions: "个会话",
    last: "最近活动",
    turns: (n: number, weeks: number) => `${weeks} 周内 ${number(n)} 轮`,
    aliases: (names: string) => `别名 ${names}`,
    dependsOn: (names: string) => `依赖 ${names}`,
    empty: "还没有项目",
    emptyNote: "在项目文件夹中开始第一个会话,或运行 nacre store --project 名称,即可创建项目。",
  },
});
