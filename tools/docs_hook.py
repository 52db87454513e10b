"""Called by MkDocs: makes pages that are written for GitHub's Markdown readable for MkDocs', and mends Debian's package of it."""
import pathlib
import re
import shutil


def on_page_markdown(markdown, **_):
    lines = []
    in_code = False
    for line in markdown.split("\n"):
        if line.startswith("```"):
            in_code = not in_code
            lines += code_begin(line)
        else:
            lines.append(line if in_code else text_line(line))
    return "\n".join(lines)


def code_begin(line):
    """MkDocs knows no words after the language of a block, such as "sh skip" and "yaml FILE=NAME"."""
    language, *words = line.split(" ")
    named = [word for word in words if word.startswith("FILE=")]
    caption = [f"File `{named[0][5:]}`:", ""] if named else []
    return caption + [language]


def text_line(line):
    if line.startswith("|"):  # a bar inside code in a table: `A\|B`
        return re.sub("`[^`]*`", lambda code: code[0].replace(r"\|", "|"), line)
    return re.sub(r"^ {1,3}(?=[-*] )", "    ", line)  # a list inside a list


def on_post_build(config, **_):
    # Pages of the readthedocs theme load jQuery 3.6.0, but Debian 12 ships another version under its own name.
    scripts = pathlib.Path(config["site_dir"]) / "js"
    wanted = scripts / "jquery-3.6.0.min.js"
    shipped = sorted(scripts.glob("jquery-*.min.js"))
    if shipped and not wanted.exists():
        shutil.copyfile(shipped[-1], wanted)
